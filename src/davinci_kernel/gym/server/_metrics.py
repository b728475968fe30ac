"""Prometheus metrics of a service, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .._types import Verdict
from ._service import GymService

_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)


class Metrics:
    """Counts verdicts by outcome; the rest is the service's state."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._verdicts = Counter(
            "davinci_gym_verdicts", "Verdicts given by evaluations", ["outcome"], registry=self.registry
        )
        self._seconds = Histogram(
            "davinci_gym_evaluation_seconds", "Seconds per evaluation", registry=self.registry, buckets=_SECONDS
        )

    def observe(self, verdict: Verdict, seconds: float) -> None:
        self._verdicts.labels(verdict.outcome.value).inc()
        self._seconds.observe(seconds)

    def watch(self, service: GymService) -> None:
        self.registry.register(_State(service))

    def render(self) -> bytes:
        """Prometheus text format 0.0.4."""
        return generate_latest(self.registry)


class _State(Collector):
    def __init__(self, service: GymService):
        self.service = service

    def collect(self) -> Iterator[Metric]:
        service = self.service
        yield GaugeMetricFamily("davinci_gym_queue", "Evaluations waiting", service.waiting)
        yield GaugeMetricFamily("davinci_gym_under_way", "Evaluations under way", service.under_way)
        yield GaugeMetricFamily("davinci_gym_places", "Evaluations that can be under way at once", service.places)
        yield CounterMetricFamily("davinci_gym_cache_hits", "Evaluations answered from the record", service.cache_hits)
        tasks = GaugeMetricFamily("davinci_gym_tasks", "Tasks on record", labels=["state"])
        for state, count in service.store.counts().items():
            tasks.add_metric([state], count)
        yield tasks
        alive = GaugeMetricFamily("davinci_gym_device_alive", "1: the device's processes answer", labels=["device"])
        stuck = GaugeMetricFamily("davinci_gym_device_overdue", "1: an evaluation takes too long", labels=["device"])
        judging = GaugeMetricFamily("davinci_gym_device_judging", "Evaluations on the device", labels=["device"])
        for device in service.pool.health():
            alive.add_metric([device.device], device.alive)
            stuck.add_metric([device.device], device.overdue)
            judging.add_metric([device.device], device.judging)
        yield from (alive, stuck, judging)
