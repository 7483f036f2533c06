// Package workflow carries out the commands of the workflow for Windows runners, one
// after the other as they do, by cmd.exe and with the shipped programs: csi-proxy.exe
// is installed as a service, tested and uninstalled. It runs in the lab lane.
package workflow
