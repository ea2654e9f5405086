"""What one broker knows of a model cluster: a broker's metadata is a moment old, and each broker's another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from drover.cluster.model import ClusterModel
from drover.cluster.throttle_lists import parse_rates, parse_throttled
from drover.facts import BrokerRates, PartitionFacts, ThrottledReplicas
from events.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerPicture:
    """Partitions, configs and live brokers as of one moment; the broker has not heard of a topic that is missing."""

    partitions: dict[TopicPartition, PartitionFacts]
    min_isr: Mapping[str, int]
    throttled_replicas: Mapping[str, ThrottledReplicas]
    rates: Mapping[int, BrokerRates]
    live_brokers: tuple[int, ...]

    @classmethod
    def of(cls, model: ClusterModel) -> Self:
        """Take the picture of this moment."""
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
