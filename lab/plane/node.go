package plane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"

	"k8s.io/client-go/tools/clientcmd"
)

// NodeIdentity is what a kubelet needs to join, all of it PEM but for the kubeconfig.
type NodeIdentity struct {
	Name       string
	Kubeconfig []byte // of user system:node:NAME, with the API server's address as a guest sees it
	Authority  []byte // signs the clients that may call the kubelet, and the API server's certificate
	Cert, Key  []byte // the kubelet serves with these
	Server     string // host:port of the API server as a guest sees it
}

// Node makes the identity of a node in a QEMU machine: a client of group system:nodes, which the Node authorizer and NodeRestriction confine
// to its own objects, and a certificate to serve with, for its address in the guest and for the forwarded port.
func (p *Plane) Node(name string) (NodeIdentity, error) {
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		return NodeIdentity{}, err
	}
	server := net.JoinHostPort(HostAddress, port)
	user := "system:node:" + name
	client, err := p.pki.signClient(user, "system:nodes")
	if err != nil {
		return NodeIdentity{}, err
	}
	serving, err := p.pki.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: []string{"system:nodes"}},
		IPAddresses: []net.IP{net.ParseIP(GuestAddress), net.ParseIP(loopback)},
		DNSNames:    []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return NodeIdentity{}, err
	}
	kubeconfig, err := clientcmd.Write(*p.pki.config("https://"+server, user, client.authInfo()))
	return NodeIdentity{Name: name, Kubeconfig: kubeconfig, Authority: p.pki.caPEM(), Cert: serving.cert, Key: serving.key, Server: server}, err
}
