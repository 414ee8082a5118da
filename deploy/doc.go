// Package deploy holds the manifests by which Springtide is installed: a kustomize base and a Helm chart. Its tests judge them as a cluster would.
package deploy
