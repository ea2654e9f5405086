"""What people say that brokers can bear, beside what the cluster reports."""

from drover.planner.capacities import Capacities, Capacity, with_capacities
from drover.planner.model import Broker, ClusterModel, LogDir, Partition


def test_a_broker_has_its_own_figures_and_the_defaults_where_these_are_missing() -> None:
    said = Capacities(Capacity(cores=8, network_in_bytes_per_s=100), {2: Capacity(cores=16)})
    assert said.of(1) == Capacity(cores=8, network_in_bytes_per_s=100)
    assert said.of(2) == Capacity(cores=16, network_in_bytes_per_s=100)


def test_what_is_said_first_wins_whoever_it_names() -> None:
    both = Capacities(Capacity(cores=4)).over(Capacities(Capacity(max_replicas=9), {2: Capacity(cores=16)}))
    assert both.of(1) == both.of(2) == Capacity(cores=4, max_replicas=9)


def test_a_size_that_kafka_reports_is_a_fact_and_a_missing_one_is_taken_from_what_is_said() -> None:
    brokers = [
        Broker(1, log_dirs=(LogDir("/d", 1000, 700),), cores=2),
        Broker(2, log_dirs=(LogDir("/a"), LogDir("/b"), LogDir("/c", code=56))),
        Broker(3),
    ]
    model = ClusterModel.of(brokers, [Partition("t", 0, (1, 2), 1, (1, 2), 300)])
    made = with_capacities(model, Capacities(Capacity(disk_bytes=5000, cores=8, max_replicas=7)))
    first, second, third = made.brokers
    assert (first.total_bytes, first.free_bytes, first.cores, first.max_replicas) == (1000, 700, 8, 7)
    assert second.log_dirs == (LogDir("/c", code=56), LogDir("/a, /b", 5000, 4700))
    assert (third.total_bytes, third.free_bytes) == (5000, 5000)
    assert with_capacities(model, Capacities()) == model
