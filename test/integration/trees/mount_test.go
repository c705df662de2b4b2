package trees_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mount is a folder as the kubelet mounts a ConfigMap: the file is a link through ..data, which is swapped as a whole.
type mount struct {
	dir      string
	versions int
}

func (m *mount) file() string { return filepath.Join(m.dir, "config.yaml") }

// swap puts another content in place.
func (m *mount) swap(text string) {
	GinkgoHelper()
	m.versions++
	version := fmt.Sprintf("..version-%d", m.versions)
	Expect(os.Mkdir(filepath.Join(m.dir, version), 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(m.dir, version, "config.yaml"), []byte(text), 0o600)).To(Succeed())
	Expect(os.Symlink(version, filepath.Join(m.dir, "..data_tmp"))).To(Succeed())
	Expect(os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data"))).To(Succeed())
	if _, err := os.Lstat(m.file()); os.IsNotExist(err) {
		Expect(os.Symlink(filepath.Join("..data", "config.yaml"), m.file())).To(Succeed())
	}
}

// remove takes the file away.
func (m *mount) remove() {
	GinkgoHelper()
	Expect(os.Remove(m.file())).To(Succeed())
}

// configured is a cluster whose operator reads its configuration from a mount.
type configured struct {
	cluster
	mount
	refused int // contents so far
}

// reload puts a configuration in place and waits until it is in force. It takes several polls of the file, in which the
// log doesn't repeat what was refused before.
func (c *configured) reload(ctx context.Context, text string) {
	GinkgoHelper()
	c.swap(text)
	hash := sha256.Sum256([]byte(text))
	c.expect(ctx, "warren_config_info", 1, "hash", hex.EncodeToString(hash[:]))
	c.expect(ctx, "warren_config_last_reload_successful", 1)
	Expect(c.refusals()).To(Equal(c.refused))
}

// expect waits until a metric with these labels, in pairs, is there and has that value.
func (c *configured) expect(ctx context.Context, metric string, value float64, labels ...string) {
	GinkgoHelper()
	pairs := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		pairs[labels[i]] = labels[i+1]
	}
	Eventually(func(g Gomega) {
		m, err := c.Operator.Metrics(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Has(metric, pairs)).To(BeTrue(), "%s %v", metric, pairs)
		g.Expect(m.Value(metric, pairs)).To(Equal(value), "%s %v", metric, pairs)
	}).WithContext(ctx).Should(Succeed())
}

// expectRefused waits until the operator has refused one more content, and expects that it says so once and stays ready.
func (c *configured) expectRefused(ctx context.Context) {
	GinkgoHelper()
	c.refused++
	Eventually(c.refusals).WithContext(ctx).Should(Equal(c.refused))
	c.expect(ctx, "warren_config_last_reload_successful", 0)
	answer, err := http.Get(c.Operator.HealthURL + "/readyz")
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	Expect(answer).To(HaveHTTPStatus(http.StatusOK))
}

// refusals counts the log lines that tell of a content that is not valid.
func (c *configured) refusals() int {
	return strings.Count(c.Operator.Log(), "the configuration file is refused; the running configuration stays in force")
}
