"""What Prometheus reads at /metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pagelift.server.memory import resident_bytes
from pagelift.server.work import Lane

if TYPE_CHECKING:
    from pagelift.runtime import LoadedModel

SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counters of one server. lanes: whose queues are shown. models: loaded checkpoints by id. jobs: by state."""

    def __init__(self, lanes: Iterable[Lane], models: Mapping[str, LoadedModel], jobs: Callable[[], Mapping[str, int]]) -> None:
        self.registry = CollectorRegistry()
        self.lanes = list(lanes)
        self.models = models
        self.jobs = jobs
        self.written = dict.fromkeys(models, 0)  # tokens
        self._lock = threading.Lock()
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
        self.refused = Counter("pagelift_refused", "Requests that were not taken on.", ["reason"], **given)
        self.registry.register(_Live(self))
        ProcessCollector(registry=self.registry)

    def answered(self, model: str, finish_reason: str | None, numbers: Mapping[str, Any]) -> None:
        """Count one generated answer by the metadata of its generation."""
        self.answers.labels(model, finish_reason or "error").inc()
        self.prompt_tokens.labels(model).inc(numbers.get("prompt_tokens", 0))
        self.output_tokens.labels(model).inc(numbers.get("output_tokens", 0))
        with self._lock:
            self.written[model] += numbers.get("output_tokens", 0)
        cached = numbers.get("cached_tokens", 0)
        self.cached_tokens.labels(model).inc(cached)
        self.cache_hits.labels(model).inc(1 if cached else 0)

    def text(self) -> bytes:
        return generate_latest(self.registry)


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
        for state, count in metrics.jobs().items():
            jobs.add_metric([state], count)
        memory = GaugeMetricFamily("pagelift_resident_bytes", "Memory of the process, without the processes that read documents.")
        memory.add_metric([], resident_bytes())
        return [waiting, running, jobs, memory, *_of_models(metrics)]


def _of_models(metrics: Metrics) -> Iterable[Metric]:
    """What the runtimes of the loaded models have to do and have done."""
    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
        "active": GaugeMetricFamily("pagelift_active_answers", "Answers in the making.", labels=["model"]),
        "queued": GaugeMetricFamily("pagelift_queued_answers", "Answers that wait for memory.", labels=["model"]),
        "reserved_bytes": GaugeMetricFamily("pagelift_cache_bytes", "Memory promised to answers in the making.", labels=["model"]),
        "prefix_bytes": GaugeMetricFamily("pagelift_prefix_cache_bytes", "Memory of kept prompts and pictures.", labels=["model"]),
        "prefix_hits": CounterMetricFamily("pagelift_prefix_cache_hits", "Prompts that were begun from the cache.", labels=["model"]),
        "prefix_misses": CounterMetricFamily("pagelift_prefix_cache_misses", "Prompts that were not.", labels=["model"]),
        "passes": CounterMetricFamily("pagelift_passes", "Passes over the weights.", labels=["model"]),
    }
    rate = GaugeMetricFamily("pagelift_passes_per_token", "Passes over the weights per generated token, since the start.", labels=["model"])
    for name, loaded in metrics.models.items():
        load = loaded.service.load()
        for attribute, family in families.items():
            family.add_metric([name], getattr(load, attribute))
        rate.add_metric([name], load.passes / max(1, metrics.written[name]))
    return [*families.values(), rate]
