"""Prometheus metrics of the gateway; names are `pagefleet_<noun>_<unit>[_total]`, label values are bounded."""

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

DOCUMENTS_ACCEPTED = Counter("pagefleet_documents_accepted_total", "Documents accepted")
DOCUMENTS_REFUSED = Counter("pagefleet_documents_refused_total", "Uploads refused, by error code", ["code"])
DOCUMENTS_ENDED = Counter("pagefleet_documents_ended_total", "Documents ended, by end state", ["state"])
PAGES_ENDED = Counter("pagefleet_pages_ended_total", "Pages ended, by end state and error code", ["state", "code"])
PAGES_QUEUED = Gauge("pagefleet_pages_queued", "Pages that no gateway has claimed, by the journal they share")
PAGES_CLAIMED = Gauge("pagefleet_pages_claimed", "Pages that this gateway works on")
GATEWAYS = Gauge("pagefleet_gateways", "Gateways that share the journal and live, this one included")
DRAIN_RATE = Gauge("pagefleet_drain_rate_pages_per_second", "Pages that this gateway reads a second while it has any")
IMAGE_BYTES = Gauge("pagefleet_image_buffer_bytes", "Bytes of page images held in memory")

PAGE_WAIT_SECONDS = Histogram(
    "pagefleet_page_wait_seconds", "From a page's claim to its dispatch, without drawing", buckets=_SECONDS
)
PAGE_RENDER_SECONDS = Histogram("pagefleet_page_render_seconds", "Drawing a page", buckets=_SECONDS)
PAGE_SERVICE_SECONDS = Histogram(
    "pagefleet_page_service_seconds", "Reading a page: the attempt that succeeded", buckets=_SECONDS
)

LANE_UP = Gauge("pagefleet_lane_up", "1 while the lane takes pages", ["lane"])
LANE_INFLIGHT = Gauge("pagefleet_lane_inflight_attempts", "Attempts in flight", ["lane"])
LANE_WINDOW = Gauge("pagefleet_lane_window_attempts", "Attempts that the lane may have in flight", ["lane"])
LANE_SHARE = Gauge(
    "pagefleet_lane_share_attempts", "Attempts that this gateway may have in flight: its part of the window", ["lane"]
)
LANE_ENGINES = Gauge(
    "pagefleet_lane_engines",
    "Engines behind the lane: over 1 where a server with data-parallel ranks does not heed the rank named",
    ["lane"],
)
LANE_FOREIGN = Gauge("pagefleet_lane_foreign_requests", "Estimated requests of other clients", ["lane"])
LANE_STALLS = Counter("pagefleet_lane_stalls_total", "Attempts that were silent for too long", ["lane"])
ATTEMPTS = Counter("pagefleet_attempts_total", "Attempts ended, by outcome", ["lane", "outcome"])
LANE_TRANSITIONS = Counter("pagefleet_lane_transitions_total", "Changes of lane state", ["lane", "state"])

RENDER_WORKER_DEATHS = Counter(
    "pagefleet_render_worker_deaths_total", "Render and inspection workers that died or were killed", ["reason"]
)
REPLICA_RESTARTS = Counter("pagefleet_replica_restarts_total", "Replica processes started again after their death")
