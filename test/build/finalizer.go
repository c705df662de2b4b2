package build

import "sigs.k8s.io/controller-runtime/pkg/client"

// Held gives an object a foreign finalizer, so that it stays Terminating when it is deleted.
func Held[T client.Object](object T) T {
	object.SetFinalizers(append(object.GetFinalizers(), "example.com/hold"))
	return object
}
