"""What Prometheus reads at /metrics."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from pagelift.server.work import Lane

SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counters of one server. lanes: whose queues are shown."""

    def __init__(self, lanes: Iterable[Lane] = ()) -> None:
        self.registry = CollectorRegistry()
        self.lanes = list(lanes)
        self.jobs: Mapping[str, int] = {}
        given: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("pagelift_requests", "Answered requests.", ["route", "status"], **given)
        self.seconds = Histogram("pagelift_request_seconds", "From arrival to the last byte.", ["route"], buckets=SECONDS, **given)
        self.in_progress = Gauge("pagelift_requests_in_progress", "Requests that are being answered.", **given)
        self.first_token = Histogram(
            "pagelift_time_to_first_token_seconds", "From arrival to the first token.", ["model"], buckets=SECONDS, **given
        )
        self.pages = Counter("pagelift_pages", "Pages read.", ["model"], **given)
        self.prompt_tokens = Counter("pagelift_prompt_tokens", "Tokens of prompts.", ["model"], **given)
        self.cached_tokens = Counter("pagelift_cached_prompt_tokens", "Tokens of prompts found in the prefix cache.", ["model"], **given)
        self.cache_hits = Counter("pagelift_cache_hits", "Answers whose prompt was in part in the prefix cache.", ["model"], **given)
        self.answers = Counter("pagelift_answers", "Generated answers by how they ended.", ["model", "finish_reason"], **given)
        self.output_tokens = Counter("pagelift_output_tokens", "Generated tokens.", ["model"], **given)
        self.passes = Counter("pagelift_passes", "Passes over the weights in which an answer took part.", ["model"], **given)
        self.refused = Counter("pagelift_refused", "Requests that were not taken on.", ["reason"], **given)
        self.cache_bytes = Gauge("pagelift_cache_bytes", "Keys, values and states of the last answer.", ["model"], **given)
        self.registry.register(_Live(self))
        ProcessCollector(registry=self.registry)

    def answered(self, model: str, finish_reason: str | None, numbers: Mapping[str, Any]) -> None:
        """Count one generated answer by the metadata of its generation."""
        self.answers.labels(model, finish_reason or "error").inc()
        self.prompt_tokens.labels(model).inc(numbers.get("prompt_tokens", 0))
        self.output_tokens.labels(model).inc(numbers.get("output_tokens", 0))
        self.passes.labels(model).inc(numbers.get("passes", 0))
        cached = numbers.get("cached_tokens", 0)
        self.cached_tokens.labels(model).inc(cached)
        self.cache_hits.labels(model).inc(1 if cached else 0)
        self.cache_bytes.labels(model).set(numbers.get("cache_bytes", 0))

    @property
    def passes_per_token(self) -> float:
        return _total(self.passes) / max(1.0, _total(self.output_tokens))

    def text(self) -> bytes:
        return generate_latest(self.registry)


def _total(counter: Counter) -> float:
    return sum(s.value for metric in counter.collect() for s in metric.samples if s.name.endswith("_total"))


class _Live:
    """What is looked up when it is asked for."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        metrics = self._metrics
        waiting = GaugeMetricFamily("pagelift_queue_length", "Requests that wait for a thread.", labels=["lane"])
        running = GaugeMetricFamily("pagelift_running", "Threads at work.", labels=["lane"])
        for lane in metrics.lanes:
            waiting.add_metric([lane.name], lane.waiting)
            running.add_metric([lane.name], lane.running)
        jobs = GaugeMetricFamily("pagelift_jobs", "Jobs by state.", labels=["state"])
        for state, count in metrics.jobs.items():
            jobs.add_metric([state], count)
        rate = GaugeMetricFamily("pagelift_passes_per_token", "Passes over the weights per generated token, since the start.")
        rate.add_metric([], metrics.passes_per_token)
        memory = GaugeMetricFamily("pagelift_resident_bytes", "Memory of the process, without the processes that read documents.")
        memory.add_metric([], resident_bytes())
        return [waiting, running, jobs, rate, memory]


def resident_bytes() -> int:
    """The resident memory of this process; where the system has no /proc, the most it ever was."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
