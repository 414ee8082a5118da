package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	quota "k8s.io/apiserver/pkg/quota/v1/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	tokens "k8s.io/kubernetes/pkg/serviceaccount"
)

// The rates are the plane's: a replayed day is a burst of hundreds of writes a second. The periods are kube-controller-manager's defaults.
const (
	controllerQPS   = 500
	controllerBurst = 1000
	workers         = 20
	resync          = 12 * time.Hour
	quotaResync     = 5 * time.Minute
	discoveryPeriod = 30 * time.Second
)

// controllerOptions are the flags of the hidden subcommand kube-controller-manager.
type controllerOptions struct {
	kubeconfig, listen, cert, key, tokenKey, rootCA, gates string
	podGroups                                              bool
}

// controllers runs the controllers that the lab's workloads need, from Kubernetes' own packages. The command of kube-controller-manager
// would bring volumes, cloud providers and cAdvisor along: 245 packages to compile that nothing here runs.
func controllers() *cobra.Command {
	var o controllerOptions
	cmd := &cobra.Command{
		Use:          "kube-controller-manager",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE:         func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of a user who may do everything")
	f.StringVar(&o.listen, "listen-address", "", "host:port to serve /healthz on")
	f.StringVar(&o.cert, "tls-cert-file", "", "certificate to serve with")
	f.StringVar(&o.key, "tls-private-key-file", "", "key of the certificate")
	f.StringVar(&o.tokenKey, "service-account-private-key-file", "", "key that signs tokens of service accounts")
	f.StringVar(&o.rootCA, "root-ca-file", "", "authority that is published in tokens' secrets")
	f.StringVar(&o.gates, "feature-gates", "", "feature gates, as name=value,...")
	f.BoolVar(&o.podGroups, "pod-groups", false, "the API server serves PodGroups: let those that are deleted go once no pod is left of them")
	return cmd
}

func (o *controllerOptions) run(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(o.gates); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config.QPS, config.Burst = controllerQPS, controllerBurst
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	set, err := newControllerSet(ctx, config)
	if err != nil {
		return err
	}
	adds := []func(context.Context) error{
		func(ctx context.Context) error { return set.serviceAccounts(ctx, o) }, set.cluster, set.garbage, set.quotas, set.disruption, set.workloads, set.nodes,
	}
	if o.podGroups {
		adds = append(adds, set.podGroups)
	}
	for _, add := range adds {
		if err := add(ctx); err != nil {
			return err
		}
	}
	set.start(ctx)
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	server := &http.Server{Addr: o.listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServeTLS(o.cert, o.key)
}

// controllerSet is what the controllers share.
type controllerSet struct {
	config  *rest.Config
	shared  informers.SharedInformerFactory
	both    informerfactory.InformerFactory
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	started chan struct{}
	runs    []func(context.Context)
	objects metadata.Interface
}

func newControllerSet(ctx context.Context, config *rest.Config) (*controllerSet, error) {
	s := &controllerSet{config: config, started: make(chan struct{})}
	client, err := s.client("shared-informers")
	if err != nil {
		return nil, err
	}
	if s.objects, err = metadata.NewForConfig(s.named("metadata-informers")); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	s.shared = informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(trim))
	s.both = informerfactory.NewInformerFactory(s.shared, metadatainformer.NewSharedInformerFactoryWithOptions(s.objects, resync, metadatainformer.WithTransform(trim)))
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	go wait.Until(s.mapper.Reset, discoveryPeriod, ctx.Done())
	return s, nil
}

// trim drops what no controller reads, as kube-controller-manager does.
func trim(obj any) (any, error) {
	if a, err := meta.Accessor(obj); err == nil && a.GetManagedFields() != nil {
		a.SetManagedFields(nil)
	}
	return obj, nil
}

func (s *controllerSet) named(name string) *rest.Config {
	return rest.AddUserAgent(rest.CopyConfig(s.config), name)
}

func (s *controllerSet) client(name string) (*kubernetes.Clientset, error) {
	c, err := kubernetes.NewForConfig(s.named(name))
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", name, err)
	}
	return c, nil
}

// add has a controller run once all have asked for their informers.
func (s *controllerSet) add(run func(context.Context)) { s.runs = append(s.runs, run) }

func (s *controllerSet) start(ctx context.Context) {
	for _, run := range s.runs {
		go run(ctx)
	}
	s.shared.Start(ctx.Done())
	s.both.Start(ctx.Done())
	close(s.started)
}

// serviceAccounts give each namespace its account and the authority that its pods trust, and secrets of type token their token.
func (s *controllerSet) serviceAccounts(ctx context.Context, o *controllerOptions) error {
	client, err := s.client("service-account-controller")
	if err != nil {
		return err
	}
	key, err := keyutil.PrivateKeyFromFile(o.tokenKey)
	if err != nil {
		return fmt.Errorf("--service-account-private-key-file: %w", err)
	}
	ca, err := os.ReadFile(o.rootCA)
	if err != nil {
		return fmt.Errorf("--root-ca-file: %w", err)
	}
	generator, err := tokens.JWTTokenGenerator(tokens.LegacyIssuer, key)
	if err != nil {
		return fmt.Errorf("make the generator of tokens: %w", err)
	}
	logger, core := klog.FromContext(ctx), s.shared.Core().V1()
	tokenController, err := serviceaccount.NewTokensController(logger, core.ServiceAccounts(), core.Secrets(), client,
		serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
	if err != nil {
		return fmt.Errorf("make the token controller: %w", err)
	}
	accounts, err := serviceaccount.NewServiceAccountsController(logger, core.ServiceAccounts(), core.Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return fmt.Errorf("make the service account controller: %w", err)
	}
	// A pod with a token also mounts the authority, from its namespace's ConfigMap kube-root-ca.crt: a kubelet waits for it.
	publisher, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
	if err != nil {
		return fmt.Errorf("make the publisher of the authority: %w", err)
	}
	s.add(func(ctx context.Context) { publisher.Run(ctx, 1) })
	s.add(func(ctx context.Context) { tokenController.Run(ctx, 5) })
	s.add(func(ctx context.Context) { accounts.Run(ctx, 1) })
	return nil
}

// cluster empties namespaces that are deleted and adds up cluster roles.
func (s *controllerSet) cluster(ctx context.Context) error {
	config := s.named("namespace-controller")
	config.QPS, config.Burst = controllerQPS*20, controllerBurst*100 // it deletes one object at a time
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		s.shared.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(s.shared.Rbac().V1().ClusterRoles(), client.RbacV1())
	s.add(func(ctx context.Context) { namespaces.Run(ctx, 10) })
	s.add(func(ctx context.Context) { roles.Run(ctx, 5) })
	return nil
}

// garbage deletes what belongs to an object that is gone.
func (s *controllerSet) garbage(ctx context.Context) error {
	client, err := s.client("generic-garbage-collector")
	if err != nil {
		return err
	}
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, s.objects, s.mapper, garbagecollector.DefaultIgnoredResources(), s.both, s.started)
	if err != nil {
		return fmt.Errorf("make the garbage collector: %w", err)
	}
	s.add(func(ctx context.Context) { gc.Run(ctx, workers, discoveryPeriod) })
	s.add(func(ctx context.Context) { gc.Sync(ctx, client.Discovery(), discoveryPeriod) })
	return nil
}

// quotas count what each ResourceQuota allows: without that, the API server refuses every pod of its namespace.
func (s *controllerSet) quotas(ctx context.Context) error {
	client, err := s.client("resourcequota-controller")
	if err != nil {
		return err
	}
	discover := client.Discovery().ServerPreferredNamespacedResources
	config, err := quotainstall.NewQuotaConfigurationForControllers(quota.ListerFuncForResourceFunc(s.shared.ForResource), s.shared)
	if err != nil {
		return fmt.Errorf("configure quotas: %w", err)
	}
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     s.shared.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(quotaResync),
		InformerFactory:           s.both,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      config.IgnoredResources,
		InformersStarted:          s.started,
		Registry:                  quota.NewRegistry(config.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return fmt.Errorf("make the quota controller: %w", err)
	}
	s.add(func(ctx context.Context) { quotas.Run(ctx, 5) })
	s.add(func(ctx context.Context) { quotas.Sync(ctx, discover, discoveryPeriod) })
	return nil
}

// disruption keeps the budgets that evictions are checked against.
func (s *controllerSet) disruption(ctx context.Context) error {
	client, err := s.client("disruption-controller")
	if err != nil {
		return err
	}
	scales, err := scale.NewForConfig(s.named("disruption-controller"), s.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return fmt.Errorf("make a client of scales: %w", err)
	}
	core, apps := s.shared.Core().V1(), s.shared.Apps().V1()
	budgets := disruption.NewDisruptionController(ctx, core.Pods(), s.shared.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, s.mapper, scales, client.Discovery())
	s.add(func(ctx context.Context) { budgets.Run(ctx, 1) })
	return nil
}

// nodes ends the pods that do not tolerate a NoExecute taint, as a fence, and takes away the pods of nodes that are
// gone. The world's kubelets end the pods that the fence deletes after their grace.
func (s *controllerSet) nodes(ctx context.Context) error {
	core := s.shared.Core().V1()
	client, err := s.client("taint-eviction-controller")
	if err != nil {
		return err
	}
	taints, err := tainteviction.New(ctx, client, core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		return fmt.Errorf("make the taint eviction controller: %w", err)
	}
	if client, err = s.client("pod-garbage-collector"); err != nil {
		return err
	}
	collector := newPodCollector(client, core.Pods(), core.Nodes())
	s.add(taints.Run)
	s.add(collector.run)
	return nil
}

// podGroups takes the finalizer that the API server puts on each PodGroup off those that are deleted.
func (s *controllerSet) podGroups(ctx context.Context) error {
	client, err := s.client("podgroup-protection-controller")
	if err != nil {
		return err
	}
	groups, err := podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx), s.shared.Scheduling().V1beta1().PodGroups(), s.shared.Core().V1().Pods(), client)
	if err != nil {
		return fmt.Errorf("make the controller of PodGroups: %w", err)
	}
	s.add(func(ctx context.Context) { groups.Run(ctx, 1) })
	return nil
}

// workloads make the pods of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.
func (s *controllerSet) workloads(ctx context.Context) error {
	client := func(name string) kubernetes.Interface { return warner{kubernetes.NewForConfigOrDie(s.named(name))} }
	core, apps := s.shared.Core().V1(), s.shared.Apps().V1()
	replicaSets := batchedReplicaSets{apps.ReplicaSets(), newBatches(ctx)}
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), replicaSets, core.Pods(), client("deployment-controller"))
	if err != nil {
		return fmt.Errorf("make the deployment controller: %w", err)
	}
	daemons, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client("daemon-set-controller"),
		flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return fmt.Errorf("make the daemon set controller: %w", err)
	}
	job.SyncJobBatchPeriod = batchPeriod // a second upstream, which the virtual clock would wait for
	jobs, err := job.NewController(ctx, client("job-controller"), core.Pods(), s.shared.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return fmt.Errorf("make the job controller: %w", err)
	}
	replicas := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), batchedPods{core.Pods(), newBatches(ctx)}, client("replicaset-controller"), replicaset.BurstReplicas)
	stateful := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client("statefulset-controller"))
	s.add(func(ctx context.Context) { deployments.Run(ctx, workers) })
	s.add(func(ctx context.Context) { daemons.Run(ctx, 2) })
	s.add(func(ctx context.Context) { jobs.Run(ctx, workers) })
	s.add(func(ctx context.Context) { replicas.Run(ctx, workers) })
	s.add(func(ctx context.Context) { stateful.Run(ctx, workers) })
	return nil
}
