# Drover from its lock file, as a user without rights. The worker by default; any other command can be given.
# How to renew the digests: docs/operating.md, Docker.
FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34 AS build
COPY .ci/uv.txt .ci/build.txt ./
RUN pip install --no-cache-dir --require-hashes -r uv.txt
ENV UV_PROJECT_ENVIRONMENT=/opt/drover UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
WORKDIR /source
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY agents agents
COPY drover drover
COPY events events
COPY projections projections
COPY spark spark
RUN uv sync --frozen --no-dev --no-install-project \
    && uv pip install --no-deps --python /opt/drover --build-constraints /build.txt .

FROM python:3.13.9-slim-bookworm@sha256:b685a4fa58bb19d1814d78a1ec0f0208f351452724f78b20212c984d6e124a34
COPY --from=build /opt/drover /opt/drover
RUN useradd --uid 10001 --create-home drover
USER 10001
ENV PATH=/opt/drover/bin:$PATH
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8150/readyz', timeout=2)"]
ENTRYPOINT ["drover"]
CMD ["worker"]
