"""The same cluster gives the same plan: in any process, with any hash seed, in whatever order it was read."""

import hashlib
import os
import random
import subprocess
import sys

from drover.planner.goals import Balance, Drain
from drover.planner.model import ClusterModel
from drover.planner.propose import propose
from tests.planning.clusters import random_cluster, random_goals

SEEDS = range(25)


def fingerprint() -> str:
    """Hash every proposal of some clusters and goals, figures and words included."""
    digest = hashlib.sha256()
    for seed in SEEDS:
        model = random_cluster(seed, most_partitions=24)
        for goal in random_goals(seed, model):
            digest.update(repr(propose(model, goal)).encode())
    return digest.hexdigest()


def test_the_plan_is_the_same_in_processes_with_other_hash_seeds() -> None:
    program = "from tests.planning.test_determinism import fingerprint; print(fingerprint())"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_the_plan_does_not_depend_on_the_order_in_which_a_cluster_was_read() -> None:
    for seed in range(20):
        model = random_cluster(seed)
        draw = random.Random(seed)
        brokers, partitions = list(model.brokers), list(model.partitions)
        draw.shuffle(brokers)
        draw.shuffle(partitions)
        other = ClusterModel.of(brokers, partitions)
        assert propose(other, Balance()) == propose(model, Balance())
        assert propose(other, Drain((1,))).digest == propose(model, Drain((1,))).digest
