"""Nodes that others put where Drover writes, under an access control of their own; a real ZooKeeper enforces it."""

import pytest

from drover.local import LocalZooKeeper
from projections.commands import PLAN
from projections.store import Store
from tests.projections.office import plan_of
from tests.projections.test_intake import office, until
from tests.projections.test_intake_nodes import write_alone


@pytest.mark.parametrize("path", ["/admin/reassign_partitions_queue", "/drover/leaders"])
async def test_a_node_of_drovers_own_that_is_replaced_by_an_unreadable_one_is_made_right(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, path: str
) -> None:
    """It used to stop the view for good."""
    made = await office(real_store, root)
    async with made.open():
        pass
    await write_alone(zookeeper, {f"{made.base}{path}": b"mine"}, may_read=False)
    made.restart()
    made.feed()
    async with made.open():
        await made.until_gone(path)
        await until(lambda: path in made.notes.drifted)
        await made.write(PLAN, plan_of((0, [4, 2, 3])))
        await made.until_shown()
