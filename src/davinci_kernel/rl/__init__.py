"""Reinforcement learning: advantages, rejection, rewards and losses as pure functions; `rl.local` trains."""

from davinci_kernel.rollout import policy_reward, selection_rewards

from .advantages import compute_advantages, leave_one_out, returns
from .batching import micro_batches
from .losses import aggregate, importance_weights, ppo_clip_loss
from .rejection import log_ratios, mismatch_masks, profile_keep_probability, profile_mask, veto

__all__ = [
    "aggregate",
    "compute_advantages",
    "importance_weights",
    "leave_one_out",
    "log_ratios",
    "micro_batches",
    "mismatch_masks",
    "policy_reward",
    "ppo_clip_loss",
    "profile_keep_probability",
    "profile_mask",
    "returns",
    "selection_rewards",
    "veto",
]
