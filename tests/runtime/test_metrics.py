"""The metrics: names, labels and what each method does to them."""

from drover.service.metrics import Metrics


def test_every_metric_is_rendered_under_its_name() -> None:
    metrics = Metrics()
    metrics.commands_decided("alter", "accepted", 2)
    metrics.outcomes_recorded("alter", (0.3, 0.02))
    metrics.batch_appended(2, 0.003)
    metrics.batch_fenced(2)
    metrics.shards_owned(3)
    metrics.inbox_size(2, 17)
    metrics.call_ended("prod", "step", "accepted")
    metrics.observed("prod")
    metrics.dead_lettered("drover.alter")
    metrics.forwarded("drover.cancel")
    metrics.log_position(2, 99)
    metrics.commands_undecided("drover.alter", 2, 4)
    text = metrics.render().decode()
    for line in (
        'drover_commands_total{type="alter",verdict="accepted"} 2.0',
        'drover_command_outcome_seconds_bucket{le="0.025",type="alter"} 1.0',
        'drover_command_outcome_seconds_count{type="alter"} 2.0',
        'drover_batches_appended_total{shard="2"} 1.0',
        'drover_append_seconds_bucket{le="0.005"} 1.0',
        'drover_batches_fenced_total{shard="2"} 1.0',
        "drover_shards_owned 3.0",
        'drover_inbox_commands{shard="2"} 17.0',
        'drover_calls_total{cluster="prod",kind="step",result="accepted"} 1.0',
        'drover_observations_total{cluster="prod",result="ok"} 1.0',
        'drover_dead_letters_total{topic="drover.alter"} 1.0',
        'drover_forwarded_total{topic="drover.cancel"} 1.0',
        'drover_log_position{shard="2"} 99.0',
        'drover_commands_undecided{shard="2",topic="drover.alter"} 4.0',
    ):
        assert line in text


def test_a_phase_that_is_not_named_any_more_falls_to_zero() -> None:
    metrics = Metrics()
    metrics.reassignments("prod", {"copying": 3, "pending": 1})
    metrics.reassignments("prod", {"copying": 2})
    text = metrics.render().decode()
    assert 'drover_reassignments{cluster="prod",phase="copying"} 2.0' in text
    assert 'drover_reassignments{cluster="prod",phase="pending"} 0.0' in text


def test_two_workers_in_one_process_do_not_share_counts() -> None:
    first, second = Metrics(), Metrics()
    first.commands_decided("alter", "refused", 1)
    assert b"refused" not in second.render()


def test_the_projection_has_its_lag_its_failures_and_its_drift() -> None:
    metrics = Metrics()
    metrics.projected("prod", 12, 30)
    metrics.projection_failed("prod", "StoreUnavailableError")
    metrics.projection_drifted("prod", 2)
    metrics.projection("prod", lag_events=7, lag_seconds=1.5, is_writing=True)
    text = metrics.render().decode()
    for line in (
        'drover_projected_events_total{cluster="prod"} 12.0',
        'drover_projected_nodes_total{cluster="prod"} 30.0',
        'drover_projection_failures_total{cluster="prod",kind="StoreUnavailableError"} 1.0',
        'drover_projection_drift_total{cluster="prod"} 2.0',
        'drover_projection_lag_events{cluster="prod"} 7.0',
        'drover_projection_lag_seconds{cluster="prod"} 1.5',
        'drover_projection_writing{cluster="prod"} 1.0',
    ):
        assert line in text
