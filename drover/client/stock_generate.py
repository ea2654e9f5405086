"""PURE: what `kafka-reassign-partitions --generate` asks for, answered by Drover's planner.

The stock tool places every replica anew, whatever the partitions have now. Drover takes the topics off the other
brokers, balances them over the named ones, and leaves every other replica where it is.
"""

from collections.abc import Collection
from dataclasses import replace

import msgspec

from drover.client.stock_tool import Lists
from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.events.partitions import TopicPartition
from drover.events.undecodable import UNDECODABLE
from drover.planner.goals import Balance, Drain, Limits
from drover.planner.model import Broker, ClusterModel
from drover.planner.proposal import Proposal
from drover.planner.propose import propose


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class _TopicsToMove(msgspec.Struct, frozen=True):
    topics: tuple[_Topic, ...]
    version: int = 1


def topics_to_move(text: str, name: str) -> tuple[str, ...]:
    """Parse `{"topics": [{"topic": "orders"}], "version": 1}`. Raises `ConfigurationError` that names the file."""
    try:
        document = msgspec.json.decode(text, type=_TopicsToMove)
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not a list of topics: {visible(str(error))}") from None
    if document.version != 1:
        raise ConfigurationError(f"Not supported version field value {document.version}")
    topics = tuple(entry.topic for entry in document.topics)
    duplicates = sorted({topic for topic in topics if topics.count(topic) > 1})
    if duplicates:
        raise ConfigurationError(f"List of topics to reassign contains duplicate entries: {', '.join(duplicates)}")
    return topics


def generate(
    model: ClusterModel, topics: Collection[str], brokers: Collection[int], *, with_racks: bool
) -> tuple[Lists, Lists]:
    """Return the current replica lists of the topics, and lists that have replicas on these brokers alone.

    `with_racks` counts racks, as every plan of Drover does. Raises `ConfigurationError` for topics and brokers that do
    not exist, and where the brokers are too few.
    """
    present = {partition.topic for partition in model.partitions}
    for topic in topics:
        if topic not in present:
            raise ConfigurationError(f"Topic {topic} not found.")
    unknown = sorted(set(brokers) - model.broker_by_id.keys())
    if unknown:
        raise ConfigurationError(f"Unknown broker id {unknown[0]}")
    current = {
        TopicPartition(*partition.name): partition.replicas
        for partition in model.partitions
        if partition.topic in topics
    }
    limits = Limits(include_internal=True, exclude_topics=tuple(sorted(present - set(topics))))
    others = tuple(sorted(model.broker_by_id.keys() - set(brokers)))
    proposed: Lists = current
    if any(not set(brokers).issuperset(replicas) for replicas in current.values()):
        placed = _checked(propose(_seen(model, (), with_racks=with_racks), Drain(others), limits))
        proposed = _after(current, placed)
        model = _with_lists(model, proposed)
    balanced = _checked(propose(_seen(model, others, with_racks=with_racks), Balance(), limits))
    return current, _after(proposed, balanced)


def _seen(model: ClusterModel, excluded: Collection[int], *, with_racks: bool) -> ClusterModel:
    def seen(broker: Broker) -> Broker:
        return replace(
            broker,
            excluded=broker.excluded or broker.id in excluded,
            rack=broker.rack if with_racks else None,
        )

    return ClusterModel.of(map(seen, model.brokers), model.partitions, model.cluster_id)


def _with_lists(model: ClusterModel, lists: Lists) -> ClusterModel:
    partitions = (
        replace(partition, replicas=lists.get(TopicPartition(*partition.name), partition.replicas))
        for partition in model.partitions
    )
    return ClusterModel.of(model.brokers, partitions, model.cluster_id)


def _checked(proposal: Proposal) -> Proposal:
    if proposal.refused:
        raise ConfigurationError("; ".join(unmet.text for unmet in proposal.unmet))
    return proposal


def _after(lists: Lists, proposal: Proposal) -> Lists:
    return {**lists, **{TopicPartition(move.topic, move.partition): move.after for move in proposal.moves}}
