"""A broker's metadata image of a model cluster. Brokers lag behind the controller, each by a different amount."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from drover.cluster.throttle_lists import parse_rates, parse_throttled
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, PartitionFacts, ThrottledReplicas
from drover.testing.model import ClusterModel


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Partitions, configs and live brokers as of one moment; the broker does not know a missing topic yet."""

    partitions: dict[TopicPartition, PartitionFacts]
    min_isr: Mapping[str, int]
    throttled_replicas: Mapping[str, ThrottledReplicas]
    rates: Mapping[int, BrokerRates]
    live_brokers: tuple[int, ...]

    @classmethod
    def of(cls, model: ClusterModel) -> Self:
        """Return the image of a broker that is up to date now."""
        return cls(
            partitions={
                partition: facts
                for partition, _ in model.each_partition()
                if (facts := model.facts(partition)) is not None
            },
            min_isr={name: model.min_isr(name) for name in model.topics},
            throttled_replicas={name: parse_throttled(topic.configs) for name, topic in model.topics.items()},
            rates={number: parse_rates(broker.configs) for number, broker in model.brokers.items()},
            live_brokers=model.live_brokers(),
        )
