# The controller and the operators' CLI in an image that holds nothing else.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) -t springtide .

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# SQLite is compiled to Go, and zone data is compiled in: no C library and no files are needed at run time.
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/springtide ./cmd/springtide \
 && mkdir -p /out/tmp /out/var/lib/springtide && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/ /
USER 65532:65532
WORKDIR /var/lib/springtide
ENTRYPOINT ["/springtide"]
