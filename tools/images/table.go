package main

// image is one container image of the project.
type image struct {
	// Name is the image's name, and that of the binary in its root folder.
	Name string
	// Package is the command that the image runs.
	Package string
	// Title and Description are what a registry shows.
	Title, Description string
	// Folder is where the binary keeps its files; the image's account owns it. Empty: none.
	Folder string
}

// images are all images. The Dockerfile builds these and no others, which TestDockerfile checks.
var images = []image{
	{Name: "springtide", Package: "./cmd/springtide", Title: "Springtide", Folder: "/var/lib/springtide",
		Description: "Controller of elastic capacity for Kubernetes, and its command line"},
	{Name: "springtide-scheduler", Package: "./cmd/springtide-scheduler", Title: "Springtide scheduler",
		Description: "Places pods on nodes and NUMA cells, uses parcels as they are lent, places gangs whole"},
	// Its manifest runs it as root, since cgroup files and the runtime's socket are root's.
	{Name: "springtide-agent", Package: "./cmd/springtide-agent", Title: "Springtide node agent",
		Description: "Confines pods to their cells, reports topology and what is clean, passes notices on"},
}

const (
	// registry stands before each image's name. Nothing is served there: push the images to your own registry, or import the archives.
	registry = "springtide.dev"
	// account is the user and the group that the images run as.
	account = 65532
	source  = "https://github.com/springtide/springtide"
	license = "Apache-2.0"
)

// platforms are the architectures, all on Linux.
var platforms = []string{"amd64", "arm64"}
