"""One task's co-evolution: schemes, multi-turn episodes, triggers, verification, `Sample` rows."""

from ._co_evolve import TaskRollout, co_evolve
from ._episode import PolicyDialogue, run_episode, usage_of
from ._rewards import policy_reward, selection_rewards
from ._schemes import SchemePlan, plan_schemes, select
from ._seeds import derive_seed
from ._summary import Proposal, SummaryRound, Trigger, find_trigger, summarise
from ._types import Agent, Sample, Scheme, Trajectory, Turn

__all__ = [
    "Agent",
    "PolicyDialogue",
    "Proposal",
    "Sample",
    "Scheme",
    "SchemePlan",
    "SummaryRound",
    "TaskRollout",
    "Trajectory",
    "Trigger",
    "Turn",
    "co_evolve",
    "derive_seed",
    "find_trigger",
    "plan_schemes",
    "policy_reward",
    "run_episode",
    "select",
    "selection_rewards",
    "summarise",
    "usage_of",
]
