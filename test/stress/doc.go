// Package stress runs many volumes of every kind at once through a whole driver: CSI
// calls on a socket, the kit, the group node on pipes, the node tasks, the agent and
// a simulated node. Calls are cancelled at random and repeated.
package stress
