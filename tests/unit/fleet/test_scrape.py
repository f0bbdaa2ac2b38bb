import pytest

from app.fleet.scrape import Scrape, parse_scrape

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


@pytest.mark.parametrize(
    ("text", "scrape"),
    [
        pytest.param(TWO_ENGINES, Scrape(slots=None, requests=8.0, steps=120.0), id="vllm, two engines added up"),
        pytest.param(CPU_REPLICA, Scrape(slots=1, requests=1.0, steps=12.0), id="our cpu replica"),
        pytest.param("python_info 1.0\n", Scrape(), id="another server's metrics"),
        pytest.param("pagefleet_replica_slots 0\n", Scrape(), id="no slots is not stated"),
        pytest.param("", Scrape(), id="empty"),
    ],
)
def test_load_slots_and_steps_are_read(text: str, scrape: Scrape) -> None:
    assert parse_scrape(text) == scrape


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError):
        parse_scrape("pagefleet_replica_slots many\n")
