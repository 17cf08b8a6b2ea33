/** Checkpoints of random weights in the shapes and names of real model families, the same on every machine. */
package org.sparkfp4.jobs.synthetic;
