"""What Spark's Kafka source is told."""

from drover.spark.log_source import LogSource


def test_a_source_reads_from_the_first_record_and_never_waits_long_for_more() -> None:
    told = LogSource("broker:9092").options(("a", "b"))
    assert (told["kafka.bootstrap.servers"], told["subscribe"], told["startingOffsets"]) == (
        "broker:9092",
        "a,b",
        "earliest",
    )
    # What Spark asks next would stand behind it; Kafka's default is half a second.
    assert int(told["kafka.fetch.max.wait.ms"]) <= 50


def test_an_option_of_the_client_wins() -> None:
    told = LogSource("broker:9092", client={"kafka.fetch.max.wait.ms": "500"}).options(("a",))
    assert told["kafka.fetch.max.wait.ms"] == "500"
