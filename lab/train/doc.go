// Package train holds what the lab's two trainers share: they show how a job answers the notices of a recall, and print what they do as
// lines of facts.
//
//   - elastic.py trains with PyTorch's elastic agents: all workers come and go, a small store and the checkpoints stay;
//   - package ps trains with parameter servers, which stay, and workers, which come and go.
//
// docs/training.md says how both are run, and jobs/ holds their manifests.
package train

import "embed"

// Jobs are the manifests of both trainers, with ${VARIABLES} for what depends on where they run.
//
//go:embed jobs/*.yaml
var Jobs embed.FS
