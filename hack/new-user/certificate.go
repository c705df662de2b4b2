package main

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// patience is how long the cluster may take to sign, and in tests to grant a right.
const patience = 3 * time.Minute

// signCertificate makes a key and lets the cluster sign a client certificate for it. Both are PEM; the key is not sent to the cluster.
func signCertificate(
	ctx context.Context, client kubernetes.Interface, user string, groups []string, expires time.Duration,
) (certificate, key []byte, err error) {
	key, err = keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	private, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	// The API server takes the common name for the user and the organizations for the user's groups.
	request, err := cert.MakeCSR(private, &pkix.Name{CommonName: user, Organization: groups}, nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate request: %w", err)
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, request, "", certificatesv1.KubeAPIServerClientSignerName,
		&expires, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, private)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		// Also after an interruption, so that nobody can approve the request later.
		gone := client.CertificatesV1().CertificateSigningRequests().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
		if gone != nil {
			err = errors.Join(err, fmt.Errorf("deleting CertificateSigningRequest %s: %w", name, gone))
		}
	}()
	if err := approveRequest(ctx, client, name); err != nil {
		return nil, nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	certificate, err = csr.WaitForCertificate(waiting, client, name, uid)
	if waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil, fmt.Errorf("CertificateSigningRequest %s was approved, but not signed within %s: this cluster may not sign for %s",
			name, patience, certificatesv1.KubeAPIServerClientSignerName)
	}
	return certificate, key, err
}

func approveRequest(ctx context.Context, client kubernetes.Interface, name string) error {
	requests := client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", name, err)
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "TestUser", Message: "a test user of Warren, made by hack/new-user",
	})
	if _, err := requests.UpdateApproval(ctx, name, request, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", name, err)
	}
	return nil
}
