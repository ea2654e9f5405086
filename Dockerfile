# Two images: `core` (docker build .), which has no Java and no Spark, and `spark` (docker build --target spark .).
# The dependencies come from the lock file and before the sources, so that an edit builds only the wheel again.
# How to renew the digests: docs/install.md, Images.
FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34 AS dependencies
COPY .ci/uv.txt .ci/build.txt ./
RUN pip install --no-cache-dir --require-hashes -r uv.txt
# With byte code, since no container may write its own: a health check would compile all that it loads each time.
ENV UV_PROJECT_ENVIRONMENT=/opt/drover UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
WORKDIR /source
COPY pyproject.toml uv.lock ./
# Such as --build-arg EXTRAS="--extra msk".
ARG EXTRAS=""
RUN uv sync --frozen --no-dev --no-install-project ${EXTRAS}

FROM dependencies AS spark-dependencies
ARG EXTRAS=""
RUN uv sync --frozen --no-dev --no-install-project --extra spark --extra local --extra plots ${EXTRAS}

FROM dependencies AS wheel
COPY README.md LICENSE NOTICE ./
COPY agents agents
COPY drover drover
COPY events events
COPY projections projections
COPY spark spark
RUN uv build --wheel --build-constraints /build.txt --out-dir /wheel

FROM dependencies AS installed
COPY --from=wheel /wheel /wheel
RUN uv pip install --no-deps --python /opt/drover /wheel/*.whl

FROM spark-dependencies AS spark-installed
COPY --from=wheel /wheel /wheel
RUN uv pip install --no-deps --python /opt/drover /wheel/*.whl
# Spark's jars, verified, and the Java that Spark starts: the container fetches and makes nothing.
ENV DROVER_CACHE_DIR=/opt/drover-cache
RUN /opt/drover/bin/drover spark jars --msk && /opt/drover/bin/python -m drover.spark.java_home

FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34 AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Drover" \
    org.opencontainers.image.description="Moves Apache Kafka partition replicas safely" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN useradd --uid 10001 --create-home drover && install --directory --owner 10001 /var/lib/drover-spark
USER 10001
# Inside, everything listens on every address; what reaches the container is decided outside.
ENV PATH=/opt/drover/bin:$PATH \
    DROVER_WORKER__LISTEN=0.0.0.0:8150 \
    DROVER_WEB__LISTEN=0.0.0.0:8160 \
    DROVER_ZOOKEEPER__LISTEN=0.0.0.0:8161 \
    DROVER_SPARK__DIRECTORY=/var/lib/drover-spark
EXPOSE 8150 8160 8161
# Of the worker; another role is checked by its own name.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["drover", "healthcheck", "worker"]
ENTRYPOINT ["drover"]
CMD ["worker"]

FROM base AS spark
COPY --from=spark-installed /opt/drover-cache /opt/drover-cache
COPY --from=spark-installed /opt/drover /opt/drover
ENV DROVER_CACHE_DIR=/opt/drover-cache
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["drover", "healthcheck", "spark"]
CMD ["spark", "run"]

FROM base AS core
COPY --from=installed /opt/drover /opt/drover
