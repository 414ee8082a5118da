package v1alpha1

import (
	"slices"
	"strings"
)

// ElasticSettingsVouched is the value of AnnotationElasticSettings.
const ElasticSettingsVouched = "vouched"

// ElasticKinds are the workloads that members of an ElasticJob may name, as "apiVersion Kind". The rule on JobMember.WorkloadRef has the
// same list, and package adapter an adapter for each; tests hold the three together.
var ElasticKinds = []string{
	"batch.volcano.sh/v1alpha1 Job",
	"batch/v1 Job",
	"jobset.x-k8s.io/v1alpha2 JobSet",
	"kubeflow.org/v1 PyTorchJob",
	"kubeflow.org/v2beta1 MPIJob",
	"ray.io/v1 RayCluster",
	"sparkoperator.k8s.io/v1beta2 SparkApplication",
	"trainer.kubeflow.org/v1alpha1 TrainJob",
}

// stableParts hold what all members need: a job that loses one of them starts again, however elastic its workers are.
var stableParts = []string{"chief", "driver", "head", "launcher", "master", "parameter-server", "ps", "scheduler", "server"}

// PartName is the part of its workload that a member is.
func (m *JobMember) PartName() string {
	if m.Part != "" {
		return m.Part
	}
	return m.Role
}

// HoldsTogether reports whether the member is, by its name, one that holds its job together: parameter servers, launcher, head, driver.
func (m *JobMember) HoldsTogether() bool {
	return slices.Contains(stableParts, strings.ToLower(m.PartName())) || slices.Contains(stableParts, m.Role)
}
