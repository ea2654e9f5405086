"""One value or more of every byte sample and sign of life."""

from drover.events import progress

PROGRESS: dict[str, progress.Sample] = {
    "worker": progress.WorkerSample(
        worker="w1", at_ms=1_790_000_000_000, shards=(progress.OwnedShard(2, 3), progress.OwnedShard(5, 1))
    ),
    "progress": progress.Progress(
        cluster="local",
        topic="orders",
        partition=0,
        epoch=3,
        at_ms=1_790_000_000_000,
        step=1,
        bytes_done=524_288,
        bytes_total=1_048_576,
        adding=(progress.ReplicaBytes(broker=4, bytes=524_288),),
    ),
    "projection": progress.ProjectionSample(
        cluster="local",
        writer="host-7-0a1b2c3d",
        role="writing",
        at_ms=1_790_000_000_000,
        lag_events=12,
        lag_ms=340,
        drifted=1,
        error="ZooKeeper at zk-1:2181 cannot be reached: check that it runs",
    ),
    "progress-with-its-source": progress.Progress(
        cluster="local",
        topic="orders",
        partition=0,
        epoch=3,
        at_ms=1_790_000_001_000,
        step=1,
        bytes_done=786_432,
        bytes_total=1_048_576,
        adding=(progress.ReplicaBytes(broker=4, bytes=786_432),),
        leader=1,
    ),
}
