"""Byte samples: rate, time to go, and which samples are dropped."""

from msgspec import structs

from drover.client.transfers import WINDOW_MS, Transfers
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress, ReplicaBytes

KEY = TopicPartition("t", 0)


def sample(at_ms: int, done: int, total: int = 1000, *, epoch: int = 1, step: int = 1) -> Progress:
    return Progress(
        cluster="prod", topic="t", partition=0, epoch=epoch, at_ms=at_ms, step=step, bytes_done=done,
        bytes_total=total, adding=(),
    )  # fmt: skip


def seen(*samples: Progress) -> Transfers:
    transfers = Transfers()
    for one in samples:
        transfers.see(one)
    return transfers


def test_the_rate_is_that_of_the_last_seconds() -> None:
    transfer = seen(sample(0, 0), sample(1000, 100), sample(2000, 300)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert (transfer.bytes_done, transfer.rate, transfer.remaining_ms) == (300, 150.0, 4667)


def test_growth_of_the_partition_is_no_progress() -> None:
    transfer = seen(sample(0, 0), sample(1000, 100, 1200)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert (transfer.rate, transfer.closing_rate, transfer.remaining_ms) == (100.0, -100.0, None)


def test_a_destination_that_dies_shows_no_negative_rate() -> None:
    transfer = seen(sample(0, 0), sample(1000, 700), sample(2000, 0)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert (transfer.bytes_done, transfer.rate, transfer.remaining_ms) == (0, 0.0, None)
    falling = seen(sample(0, 700), sample(1000, 0)).transfer("prod", KEY, 1)
    assert falling is not None
    assert (falling.rate, falling.closing_rate) == (0.0, -700.0)


def held(at_ms: int, **by_broker: int) -> Progress:
    """Sample what each of the brokers `b3`, `b4` holds of 1000 bytes."""
    adding = tuple(ReplicaBytes(int(name[1:]), size) for name, size in by_broker.items())
    return structs.replace(sample(at_ms, sum(by_broker.values()), 1000 * len(adding)), adding=adding)


def test_what_a_broker_brings_back_was_not_copied_now() -> None:
    down = [held(0, b3=500, b4=500), held(1000, b3=0, b4=600), held(2000, b3=0, b4=700)]
    back = seen(*down, held(3000, b3=500, b4=800))
    transfer = back.transfer("prod", KEY, 1)
    assert transfer is not None
    assert (transfer.bytes_done, transfer.rate, transfer.remaining_ms) == (1300, None, None)
    assert back.arriving("prod", KEY, 1) is None
    back.see(held(4000, b3=510, b4=900))
    transfer, arriving = back.transfer("prod", KEY, 1), back.arriving("prod", KEY, 1)
    assert transfer is not None
    assert arriving is not None
    assert (transfer.rate, transfer.closing_rate, arriving.rates) == (110.0, 110.0, {3: 10.0, 4: 100.0})


def test_a_broker_that_dies_does_not_make_the_copy_of_another_one_stall() -> None:
    copying = [held(at_ms, b3=400 + at_ms // 1000, b4=at_ms // 1000) for at_ms in range(1000, 62_000, 1000)]
    assert not stalled(*copying, held(62_000, b3=0, b4=62))


def test_one_sample_gives_no_rate() -> None:
    transfer = seen(sample(0, 10)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert (transfer.rate, transfer.remaining_ms) == (None, None)


def test_what_is_copied_needs_no_more_time() -> None:
    transfer = seen(sample(0, 1000)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert transfer.remaining_ms == 0


def test_samples_of_a_replaced_owner_are_dropped() -> None:
    transfer = seen(sample(0, 100, epoch=2), sample(5000, 900, epoch=1)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert transfer.bytes_done == 100


def test_a_new_step_begins_anew_and_the_old_one_is_forgotten() -> None:
    transfers = seen(sample(0, 0), sample(1000, 500), sample(2000, 10, step=2))
    assert transfers.transfer("prod", KEY, 1) is None
    transfer = transfers.transfer("prod", KEY, 2)
    assert transfer is not None
    assert transfer.rate is None


def test_old_samples_leave_the_window_and_repeats_are_harmless() -> None:
    repeated = sample(WINDOW_MS + 5000, 400)
    transfer = seen(sample(0, 0), sample(5000, 300), repeated, repeated, sample(6000, 1)).transfer("prod", KEY, 1)
    assert transfer is not None
    assert transfer.rate == 100 / WINDOW_MS * 1000


def test_a_rate_is_of_the_last_seconds_and_then_of_nothing() -> None:
    transfers = seen(sample(0, 0), sample(1000, 100), sample(2000, 300))
    fresh, old = (transfers.transfer("prod", KEY, 1, now_ms) for now_ms in (6000, 43_000))
    assert fresh is not None
    assert old is not None
    assert (fresh.rate, old.rate, old.remaining_ms) == (150.0, None, None)
    assert (old.bytes_done, old.at_ms) == (300, 2000)


def test_samples_that_come_seldom_are_fresh_for_longer() -> None:
    transfer = seen(sample(0, 0), sample(6000, 100), sample(12_000, 300)).transfer("prod", KEY, 1, 25_000)
    assert transfer is not None
    assert transfer.rate is not None


def test_a_burst_of_producers_is_no_copy_that_never_ends() -> None:
    bursts = [sample(second * 1000, 500 + 1000 * (second // 20), 1500 + 10 * second) for second in range(15)]
    transfer = seen(*bursts).transfer("prod", KEY, 1)
    assert transfer is not None
    assert transfer.closing_rate is not None
    assert transfer.closing_rate < 0
    assert not transfer.falls_behind


def test_a_copy_that_has_lost_ground_for_a_minute_falls_behind() -> None:
    behind = [sample(second * 1000, 10 * second, 1000 + 20 * second) for second in range(0, 70, 2)]
    transfer = seen(*behind).transfer("prod", KEY, 1)
    assert transfer is not None
    assert transfer.falls_behind
    idle = [sample(second * 1000, 10, 1000) for second in range(0, 70, 2)]
    transfer = seen(*idle).transfer("prod", KEY, 1)
    assert transfer is not None
    assert not transfer.falls_behind


def stalled(*samples: Progress) -> bool:
    transfer = seen(*samples).transfer("prod", KEY, 1)
    assert transfer is not None
    return transfer.has_stalled


def test_a_minute_without_a_byte_is_a_stall_and_less_is_none() -> None:
    quiet = [sample(at_ms, 400) for at_ms in range(0, 60_001, 5_000)]
    assert stalled(*quiet)
    assert not stalled(*quiet[:-1])
    assert not stalled(*quiet[:-1], sample(60_000, 401))


def test_what_is_copied_has_not_stalled() -> None:
    assert not stalled(*(sample(at_ms, 1000) for at_ms in range(0, 60_001, 5_000)))
