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
# An ARG with a default would hide the engine's own value.
ARG TARGETARCH
ARG REVISION=unknown
RUN go run ./tools/images --arch ${TARGETARCH:-amd64} --root /out

FROM scratch AS base
ENV PATH=/ ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532

FROM base AS springtide
COPY --from=build /out/springtide /
COPY --from=build --chown=65532:65532 /out/springtide/var/lib/springtide /var/lib/springtide
WORKDIR /var/lib/springtide
ENTRYPOINT ["/springtide"]

FROM base AS springtide-scheduler
COPY --from=build /out/springtide-scheduler /
WORKDIR /
ENTRYPOINT ["/springtide-scheduler"]

FROM base AS springtide-agent
COPY --from=build /out/springtide-agent /
WORKDIR /
ENTRYPOINT ["/springtide-agent"]
