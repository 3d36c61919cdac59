"""Physical characters inside Blender; the mathematics is in `backend/physics`.

Body         `bodies`: the body that a rig gets, its settings, and what the backend says of it.
Skin         `skin`: which vertices of a character's meshes move with which joint.
Overlay      `overlay`: the body's shapes on the rig in 3D Views.
Physical     `physical.making(obj, …)`: clips made physical by a job, baked beside the originals.
Graphs       `graphs`, `graph_nodes`: control graphs as node trees, and as plans for the backend.
Learning     `learning`, `models`: skills and graphs learned by jobs, and the list of them.
Simulating   `simulating.making(rigs, …)`: simulations by a job, baked as Actions; `balls` thrown.
Playing      `live.Play`: simulations frame by frame in the viewport, pushed meanwhile.
"""
