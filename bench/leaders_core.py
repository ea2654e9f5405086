"""Drafts in which a broker of a large model cluster gives up its leaders and gets them back; no Kafka."""

from bench.core import case_least, draft_rows
from bench.results import AtMost, Benchmark, Row


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Run the case of the core's benchmark that is about leaders."""
    core = await case_least("leaders", quick=quick)
    return (
        *draft_rows("one draft, 10,000 partitions", core, (50, AtMost(2)), (100, AtMost(10))),
        Row("processor time of all drafts, given up and restored", sum(core["draft_ms"]), "ms"),
        Row("the same with the fold and the effects", sum(core["turn_ms"]), "ms"),
        Row("turns of the shard until they were given up", core["turns"][0], "turns"),
        Row("turns until they were restored", core["turns"][1], "turns"),
    )


METHOD = """\
As in the core's benchmark (processor time, the least of three runs that do the same, and the same piece of Python as
the baseline), on a model of 7 brokers with 10,000 partitions. One broker leads a seventh of them and is in three
sevenths of the lists: it is demoted, and restored once it leads nothing. Only drafts that heard something count for
the median and the worst."""
BENCHMARK = Benchmark("leaders-core", "Leaders of a broker on a model: processor time of a draft", METHOD, run)
