# pocketgraph in a container, for a folder with models:
#   docker build -t pocketgraph .
#   docker run --rm -v "$PWD:/work" pocketgraph summarize frozen.pb
FROM python:3.12-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
RUN --mount=from=build,source=/wheels,target=/wheels pip install --no-cache-dir /wheels/*.whl
RUN useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["pocketgraph"]
CMD ["--help"]
