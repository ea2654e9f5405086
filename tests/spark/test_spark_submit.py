"""The job under spark-submit: it goes on where another has died, and another goes on where it does."""

import asyncio

import pytest

from tests.integration.support import wait_for
from tests.spark import live
from tests.spark.dying import AFTER, LATER, START_S, Dying, goes_on_to_the_end, holds_all_up_to, reading
from tests.spark.simulated import LOG

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.story,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("job_in_process"),
]


async def test_the_job_under_spark_submit_goes_on_after_a_death_and_another_after_its_own(dying: Dying) -> None:
    """The first was killed after its batch was applied, before Spark knew; the second is, from outside, somewhere."""
    await holds_all_up_to(dying.log, await dying.left(AFTER), 1)
    job = await dying.successor()

    async def keeps() -> bool:
        assert job.process.poll() is None, job.said
        return "Keeping the tables" in job.said

    await wait_for(keeps, "the job under spark-submit", timeout_s=START_S)
    files = reading(dying.log, job.directory).files
    await live.wait_until_equal(dying.log, files.tables)
    checkpoint = files.checkpoint("sqlite")
    before = live.last_in(checkpoint / "offsets")
    await live.append(dying.log, dying.log.names.events, LOG[-LATER:], 3)

    async def has_begun() -> bool:
        return live.last_in(checkpoint / "offsets") > before

    await wait_for(has_begun, "a batch")
    await asyncio.to_thread(job.kill)
    begun, known = live.last_in(checkpoint / "offsets"), live.last_in(checkpoint / "commits")
    standing = live.standing_in(files.tables)
    # A kill from outside comes when it comes: what Spark knows to be done is in the tables, and at most one batch more.
    assert begun > before
    assert begun - 1 <= known <= standing <= begun
    await holds_all_up_to(dying.log, job.directory, standing)
    await goes_on_to_the_end(dying.log, job.directory)
