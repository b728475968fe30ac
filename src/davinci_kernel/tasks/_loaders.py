"""Loading tasks."""

from davinci_kernel.config import TasksConfig

from ._generator import GeneratorSpec, generate_task
from ._task import Task


def load_tasks(config: TasksConfig, seed: int) -> list[Task]:
    spec = GeneratorSpec.model_validate(config.options)
    return [generate_task(seed, i, config.split, spec) for i in range(config.limit or 512)]
