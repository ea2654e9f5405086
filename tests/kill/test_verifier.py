"""The verifier lets a dead letter be missing only where a worker has said so."""

import json

from tests.kill.verifier import given_up

TOPIC = "drover.alter"


def named(partition: int, offset: int) -> str:
    event = "a record is not a command and went to the dead letters"
    return json.dumps({"event": event, "topic": TOPIC, "partition": partition, "offset": offset})


def missing(partition: int, records: int) -> str:
    event = "dead letters may be missing, the records remain in their topic"
    return json.dumps({"event": event, "records": records, "partition": partition})


def test_what_could_not_be_written_are_the_last_records_that_were_named_of_that_partition() -> None:
    log = "\n".join((named(1, 3), named(1, 4), named(2, 9), named(1, 5), missing(1, 2), named(1, 6)))
    assert given_up([log]) == {(TOPIC, 1, 4), (TOPIC, 1, 5)}


def test_what_one_worker_has_named_says_nothing_of_another_one() -> None:
    assert given_up([named(1, 3), missing(1, 1)]) == set()


def test_nothing_is_missing_where_no_worker_says_so() -> None:
    assert given_up([named(1, 3), ""]) == set()
