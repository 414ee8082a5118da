# The project's images, for those who build with an engine. `make images` builds the same files into archives without one.
#
#   docker build --target springtide -t springtide.dev/springtide:0.1.0 --build-arg REVISION=$(git rev-parse HEAD) .
#
# Each image holds a static binary, CA certificates and zone data, and nothing else; tools/images lays the files out.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETARCH=amd64
ARG REVISION=unknown

FROM build AS build-springtide
RUN go run ./tools/images --arch ${TARGETARCH} --root /out springtide

FROM scratch AS springtide
COPY --from=build-springtide /out /
COPY --from=build-springtide --chown=65532:65532 /out/var/lib/springtide /var/lib/springtide
ENV PATH=/ ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /var/lib/springtide
ENTRYPOINT ["/springtide"]

FROM build AS build-springtide-agent
RUN go run ./tools/images --arch ${TARGETARCH} --root /out springtide-agent

FROM scratch AS springtide-agent
COPY --from=build-springtide-agent /out /
ENV PATH=/ ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/springtide-agent"]

FROM build AS build-springtide-scheduler
RUN go run ./tools/images --arch ${TARGETARCH} --root /out springtide-scheduler

FROM scratch AS springtide-scheduler
COPY --from=build-springtide-scheduler /out /
ENV PATH=/ ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/springtide-scheduler"]

FROM build AS build-springtide-scheduler
RUN go run ./tools/images --arch ${TARGETARCH} --root /out springtide-scheduler

FROM scratch AS springtide-scheduler
COPY --from=build-springtide-scheduler /out /
ENV PATH=/ ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/springtide-scheduler"]
