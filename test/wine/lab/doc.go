// Package lab tests Windows programs against a simulated node: WMI, the devices
// and the Win32 calls of the prefix are stand-ins that ask it, see package
// standin. test/wine/run starts the node server and says where it is:
//
//	CSI_STANDIN          the stand-in link
//	CSI_STANDIN_CONTROL  the control interface of the node and of the link
package lab
