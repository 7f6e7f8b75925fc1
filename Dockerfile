# kernelstream: a server with a command line beside it.
#   docker build -t kernelstream .                          add --build-arg RUN_TESTS=1 to run the tests while building
#   docker run -p 50051:50051 -p 9464:9464 -v kernelstream:/data kernelstream
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /source
COPY deploy/packages.txt deploy/install-packages.sh deploy/
RUN deploy/install-packages.sh build
COPY . .
RUN bash -c 'set -e; . deploy/lib.sh; cmake --preset programs; cmake --build --preset programs -j "$(parallel_jobs)"'
RUN DESTDIR=/staged cmake --install build/programs --prefix /usr --strip
ARG RUN_TESTS=0
RUN if [ "$RUN_TESTS" = 1 ]; then KERNELSTREAM_FAST=1 tests/run.sh; fi

FROM ${BASE}
COPY deploy/packages.txt deploy/install-packages.sh /tmp/deploy/
RUN /tmp/deploy/install-packages.sh runtime \
 && rm -rf /tmp/deploy /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/apt /var/log/dpkg.log \
      /usr/share/doc /usr/share/man /usr/share/locale \
 && groupadd --gid 10001 kernelstream \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin kernelstream \
 && install -d -o 10001 -g 10001 /data
COPY --from=build /staged/usr/bin/kernelstream-server /staged/usr/bin/kernelstream /usr/bin/
COPY LICENSE /usr/share/kernelstream/LICENSE
ENV KERNELSTREAM_DATA_DIR=/data \
    KERNELSTREAM_LISTEN=0.0.0.0:50051 \
    KERNELSTREAM_METRICS_LISTEN=0.0.0.0:9464 \
    KERNELSTREAM_ADDRESS=localhost:50051
USER 10001:10001
VOLUME /data
EXPOSE 50051 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["kernelstream", "health"]
ENTRYPOINT ["kernelstream-server"]
