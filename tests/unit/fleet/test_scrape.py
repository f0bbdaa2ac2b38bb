import pytest

from app.fleet.scrape import EngineLoad, Scrape, parse_scrape

TWO_ENGINES = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 4.0
vllm:num_requests_running{engine="1",model_name="tiny"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 1.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 0.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.5
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="tiny"} 7.0
vllm:num_preemptions_total{engine="1",model_name="tiny"} 0.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="tiny"} 90.0
vllm:iteration_tokens_total_count{engine="0",model_name="tiny"} 100.0
vllm:iteration_tokens_total_sum{engine="0",model_name="tiny"} 5000.0
vllm:iteration_tokens_total_count{engine="1",model_name="tiny"} 20.0
"""

CPU_REPLICA = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="pagefleet-cpu"} 1.0
vllm:num_requests_waiting{engine="0",model_name="pagefleet-cpu"} 0.0
# TYPE pagefleet_replica_slots gauge
pagefleet_replica_slots 1.0
# TYPE pagefleet_replica_steps_total counter
pagefleet_replica_steps_total 12.0
"""


ENGINE_0 = EngineLoad(running=4.0, waiting=1.0, kv_usage=0.25, preemptions=7.0, steps=100.0)
ENGINE_1 = EngineLoad(running=3.0, waiting=0.0, kv_usage=0.5, preemptions=0.0, steps=20.0)
BOTH = EngineLoad(running=7.0, waiting=1.0, kv_usage=0.5, preemptions=7.0, steps=120.0)


@pytest.mark.parametrize(
    ("text", "engines"),
    [
        pytest.param(TWO_ENGINES, (ENGINE_0, ENGINE_1), id="vllm, two engines"),
        pytest.param(
            TWO_ENGINES.replace('engine="0"', 'engine="10"').replace('engine="1"', 'engine="9"'),
            (ENGINE_1, ENGINE_0),
            id="engines of a second server: by number, from 9",
        ),
        pytest.param(TWO_ENGINES.replace('engine="1"', 'engine="2"'), (BOTH,), id="a gap: no ranks"),
        pytest.param(TWO_ENGINES.replace('engine="1"', 'engine="b"'), (BOTH,), id="names: no ranks"),
        pytest.param(CPU_REPLICA, (EngineLoad(slots=1, running=1.0, waiting=0.0, steps=12.0),), id="our cpu replica"),
        pytest.param("python_info 1.0\n", (), id="another server's metrics"),
        pytest.param("pagefleet_replica_slots 0\n", (), id="no slots is not stated"),
        pytest.param("", (), id="empty"),
    ],
)
def test_the_load_of_each_engine_is_read(text: str, engines: tuple[EngineLoad, ...]) -> None:
    assert parse_scrape(text) == Scrape(engines)


def test_engines_are_added_up() -> None:
    total = parse_scrape(TWO_ENGINES).total
    assert total == BOTH
    assert total.requests == 8.0
    assert Scrape().total == EngineLoad()
    assert EngineLoad().requests is None


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError):
        parse_scrape("pagefleet_replica_slots many\n")
