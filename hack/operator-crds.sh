#!/usr/bin/env bash
# Brings the CRDs of operators whose jobs Springtide resizes into internal/kube/testdata/crds, as their Go modules carry them. Their
# modules stay out of go.mod: tests read the definitions alone.
set -euo pipefail
cd "$(dirname "$0")/.."
out=internal/kube/testdata/crds
root=$PWD

# fetch MODULE@VERSION prints the folder of a module.
fetch() { (cd / && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }
# keep FILE packs a definition without a time stamp, so that the same definition is the same bytes.
keep() { gzip -9nc "$1" >"$out/$(basename "$1").gz"; }

keep "$(fetch github.com/kubeflow/mpi-operator@v0.6.0)/manifests/base/kubeflow.org_mpijobs.yaml"
keep "$(fetch github.com/kubeflow/training-operator@v1.8.1)/manifests/base/crds/kubeflow.org_pytorchjobs.yaml"
keep "$(fetch github.com/kubeflow/trainer/v2@v2.0.0)/manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"
keep "$(fetch sigs.k8s.io/jobset@v0.8.0)/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
keep "$(fetch github.com/ray-project/kuberay/ray-operator@v1.3.2)/config/crd/bases/ray.io_rayclusters.yaml"

# Volcano's module of types has no definition in it: it is generated from them, as Volcano does itself.
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
go build -modfile=tools/controller-gen.mod -o "$work/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen
cp -r "$(fetch volcano.sh/apis@v1.12.1)" "$work/apis" && chmod -R u+w "$work/apis"
(cd "$work/apis" && GOFLAGS=-mod=mod "$work/controller-gen" crd paths=./pkg/apis/batch/v1alpha1 output:crd:dir="$work/crd")
keep "$work/crd/batch.volcano.sh_jobs.yaml"

cd "$root/$out" && sha256sum ./*.gz
