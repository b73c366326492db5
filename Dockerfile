# pagelift serve as a user without rights.
#
#   docker build -t pagelift .
#   docker run --rm -p 127.0.0.1:8080:8080 -v pagelift:/data -e PAGELIFT_API_KEY=... pagelift
#
# With a model: put its folder into a volume and add `--model /models/NAME` to the command. Nothing is fetched at run time.
# The health check asks 127.0.0.1:8080 by HTTP: with --allow-host add `--allow-host 127.0.0.1`, with TLS or another port give
# docker run a --health-cmd of your own. `docker stop --time 40` leaves requests the time that --drain-seconds gives them.

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY csrc csrc
COPY src src
RUN python -m venv /opt/pagelift && /opt/pagelift/bin/pip install --no-cache-dir '.[server]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home pagelift
COPY --from=build /opt/pagelift /opt/pagelift
ENV PATH=/opt/pagelift/bin:$PATH PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 XDG_CONFIG_HOME=/data/config XDG_DATA_HOME=/data/share
USER pagelift
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/ready', timeout=4)"]
ENTRYPOINT ["pagelift", "serve", "--host", "0.0.0.0"]
