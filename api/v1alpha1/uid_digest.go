package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// uidDigestPrefix tells a digest from a UID, which earlier versions recorded as it is.
const uidDigestPrefix = "sha256:"

// DigestUID returns what is recorded of a namespace's UID where others than those who may read the namespace see the record:
// "sha256:" and the digest of the UID. The webhooks take the UID itself as a proof that the sender of a review may read the
// namespace. What is empty or a digest already stays.
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
