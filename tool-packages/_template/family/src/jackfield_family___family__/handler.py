from jackfield import ok
