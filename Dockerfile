# The operator's image: four static binaries and nothing else. `make image` writes the same without a container tool.
FROM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT=unknown
WORKDIR /src
# The modules first: they are downloaded again only when they change.
COPY go.mod go.sum ./
COPY pkg/watchset/go.mod pkg/watchset/go.sum pkg/watchset/
RUN go mod download
# Only what .dockerignore lets in.
COPY . .
# GOARCH is left to Go where the builder doesn't set TARGETARCH.
RUN export CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} && \
    for program in manager:. manager-billing:./cmd/manager-billing manager-bigquery:./cmd/manager-bigquery kubectl-warren:./cmd/kubectl-warren; do \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" -o "/${program%%:*}" "${program#*:}" || exit 1; done
RUN go run ./hack/sbom -version "${VERSION}" -o /sbom.cdx.json /manager /manager-billing /manager-bigquery /kubectl-warren

FROM scratch
ARG VERSION=unknown
ARG COMMIT=unknown
LABEL org.opencontainers.image.version=${VERSION} org.opencontainers.image.revision=${COMMIT}
COPY --from=build /manager /manager-billing /manager-bigquery /kubectl-warren /sbom.cdx.json /
# A number: no /etc/passwd is here to look a name up in.
USER 65532:65532
ENTRYPOINT ["/manager"]
