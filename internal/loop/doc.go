// Package loop runs the cycle: observe, read history, learn, forecast, plan, act, record. It declares the ports that the outside world
// implements, holds the little state that a cycle hands to the next one, and re-validates each action at the door.
//
// The controller and the simulator run the same [Loop.Cycle]; only the ports differ. Every step is safe to stop: the truth of a move
// lives in the API objects, never here.
package loop
