package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// account is where the kubelet mounts what a pod needs to speak to the API server.
const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// askAPI sends one GET, as any client in a pod does: by the service's address, the mounted authority and the mounted token.
func askAPI(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one path, as in: guest api /api/v1/namespaces/default/pods")
	}
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return fmt.Errorf("no certificate in %sca.crt", account)
	}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(http.MethodGet, "https://"+server+args[0], nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Printf("%s\n%s\n", response.Status, body)
	return err
}
