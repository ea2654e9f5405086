"""Ways to log in that need somebody beside Kafka: an identity provider, a KDC, AWS."""
