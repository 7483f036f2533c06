package tree

// VolumeHandles returns how many handles are open on a volume, named by its id,
// or on a share, named `\\server\share`.
func (t *Tree) VolumeHandles(name string) int {
	t.mu.Lock()
	defer t.unlock()
	count := 0
	for _, open := range t.handles {
		if volumeKey(open.node.vol.linkVolume()) == volumeKey(name) {
			count++
		}
	}
	return count
}
