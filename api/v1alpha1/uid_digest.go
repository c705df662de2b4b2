package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// uidDigestPrefix distinguishes a digest from a UID, which earlier versions recorded as it is.
const uidDigestPrefix = "sha256:"

// DigestUID returns "sha256:" and the digest of a namespace's UID. Users who may not read the namespace may see this record, but must not
// learn the UID: the webhooks take the UID as a proof that the sender of a review may read the namespace. An empty uid, or one that is a
// digest already, is returned as it is.
func DigestUID(uid string) string {
	if uid == "" || strings.HasPrefix(uid, uidDigestPrefix) {
		return uid
	}
	digest := sha256.Sum256([]byte(uid))
	return uidDigestPrefix + hex.EncodeToString(digest[:])
}

// RecordsUID reports whether recorded is the digest of uid or, as earlier versions wrote it, uid itself.
func RecordsUID(recorded, uid string) bool {
	return recorded == uid || recorded == DigestUID(uid)
}
