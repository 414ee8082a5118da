package v1alpha1

// Deep copies and CRDs follow the markers in this package; `make generate` must leave no diff.
//
//go:generate go tool -modfile=../../tools/controller-gen.mod controller-gen object paths=. crd:maxDescLen=400 paths=. output:crd:artifacts:config=../../deploy/crd
//go:generate go -C ../../deploy/base run ../../tools/chart
